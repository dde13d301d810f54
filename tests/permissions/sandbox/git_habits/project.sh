# A small project with branches, tags, a remote and a library beside its files.
git init -q remote.git --bare
git init -q lib-source
cd lib-source
echo lib > lib.txt
git add . && git commit -qm "Begin the library"
cd ..
git init -q work && cd work
mkdir src docs
printf 'one\ntwo\nthree\n' > src/a.txt
echo read > docs/b.md
printf '*.log\n' > .gitignore
git add . && git commit -qm first
git remote add origin "$PWD/../remote.git"
git push -q -u origin main
git switch -q -c topic
printf 'one\nTWO\nthree\n' > src/a.txt
git commit -qam "Shout two"
echo new > docs/c.md
git add . && git commit -qm "Add c"
git push -q origin topic
git switch -q main
git switch -q -c other
printf 'one\n2\nthree\n' > src/a.txt
git commit -qam "Count two"
git push -q origin other
git switch -q main
git branch -q -D other
git tag v1
git pack-refs --all
