FROM scratch
COPY --from c d
RUN after
