# A repository with a commit whose name does not depend on the time.
set -e
export GIT_AUTHOR_DATE="2020-01-01T00:00:00Z" GIT_COMMITTER_DATE="2020-01-01T00:00:00Z" GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init --quiet --initial-branch main ../tmp/repository
cd ../tmp/repository
echo text > file
git add file
git commit --quiet --message "Add a file"
git log --oneline | cat
git status --short
git gc --quiet
git grep --quiet absent || echo "status $?"
cd .. && rm -r repository
