FROM scratch
COPY --from=a --from=b c d
RUN after
