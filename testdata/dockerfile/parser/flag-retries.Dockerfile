FROM scratch
HEALTHCHECK --retries=-1 CMD a
RUN after
