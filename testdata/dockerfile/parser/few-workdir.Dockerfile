FROM scratch
WORKDIR
RUN after
