FROM scratch
VOLUME [""]
RUN after
