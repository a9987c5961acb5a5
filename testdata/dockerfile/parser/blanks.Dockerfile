FROM  	 scratch 	
COPY a		b   c/d
EXPOSE 1	2
WORKDIR   /a  b  
RUN   a  b  
USER ab
