# A job that says when it runs and when it is continued.
trap 'echo resumed' CONT
echo running
while :; do sleep 0.05; done
