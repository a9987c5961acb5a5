FROM scratch
ENV A=b
ENV A b
ENV A   b  c=d "e"
ENV A=b C="d e" F='g h' I=j\ k L="m\"n" O='p\' Q= R="" S=T=U
ENV "A B" c
ENV "A=B" C=d
LABEL a.b/c="d" "e f"=g
LABEL a b
ARG A B=c D="e f" G=
ENV A="open quote B=c
ENV A='it' B=\'C D=\"E
ENV A=$B C=${D:-"e f"}
ENV	A=b	C=d
