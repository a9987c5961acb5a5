FROM scratch
ONBUILD RUN a
onbuild copy --from=x a b
ONBUILD ENV a=b c=d
ONBUILD CMD ["a"]
ONBUILD   WORKDIR   /a b
