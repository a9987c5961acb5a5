FROM scratch
WORKDIR --x /a
RUN after
