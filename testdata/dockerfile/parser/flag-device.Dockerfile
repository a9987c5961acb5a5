FROM scratch
RUN --device=a,b=c d
RUN after
