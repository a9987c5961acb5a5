FROM scratch
ENV A=b =c
