FROM scratch
ONBUILD ENV a
RUN after
