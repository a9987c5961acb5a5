FROM scratch
ONBUILD
RUN after
