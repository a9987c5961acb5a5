FROM scratch
ENV A
ENV B=c
