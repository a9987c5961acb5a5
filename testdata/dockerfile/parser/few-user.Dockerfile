FROM scratch
USER
RUN after
