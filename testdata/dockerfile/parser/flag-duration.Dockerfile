FROM scratch
HEALTHCHECK --interval=5 CMD a
RUN after
