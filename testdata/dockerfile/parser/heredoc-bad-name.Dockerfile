FROM scratch
RUN echo ${x:- <<'a b'}
