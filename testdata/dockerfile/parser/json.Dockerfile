FROM scratch
RUN ["a", "b c", "\"d\"", "\u0065\n\/"]
RUN [ "a" , "b" ]
RUN ['a', 'b']
RUN ["a",]
RUN ["a" "b"]
RUN ["a"] b
RUN [ -f x ] && y
RUN [[ -f x ]] || y
CMD ["a", \
     # comment
     "b"]
COPY ["a b", "/c d/"]
COPY [a, /b]
ADD ["a", "b", "c"]
VOLUME ["/a"]
VOLUME [/a]
CMD ["\x"]
CMD ["tab	here"]
CMD ["\ud83d\ude00", "\ud83d", "é"]
CMD [1e999]
