FROM scratch
COPY --link=maybe c d
RUN after
