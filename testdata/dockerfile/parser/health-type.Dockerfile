FROM scratch
HEALTHCHECK curl -f x
RUN after
