FROM scratch
ENV A=b C
LABEL a=b c d=e
