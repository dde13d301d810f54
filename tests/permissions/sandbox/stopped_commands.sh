# Fills an empty folder with a project that the commands of stopped_commands.txt work on.
mkdir -p src tests sub empty
printf 'text\nmore\n' > README.md
printf 'one\n' > some.txt
printf '#!/bin/sh\necho run\n' > run.sh
printf 'def main():\n    pass\n' > src/app.py
printf 'import os\nopen("src/made.txt","w").write("1")\n' >> src/app.py
printf 'def test_a(tmp_path):\n    open("written.txt", "w").write("1")\n' > tests/test_writes.py
printf 'def test_a():\n    assert 1 == 2\n' > tests/test_fails.py
printf 'def test_a():\n    assert 1 == 1\n' > tests/test_reads.py
printf 'import sys\nopen(__import__("os").path.expanduser(sys.argv[1]), "w").write("1")\n' > write_to.py
printf 'int main(void) { return 0; }\n' > main.c
printf 'all:\n\techo built > out.txt\ninstall:\n\tinstall -m 755 run.sh /usr/local/bin/run\n' > Makefile
printf 'all: part.o\npart.o: part.c\n\t$(CC) -c part.c\n' > sub/Makefile
printf 'int part(void) { return 0; }\n' > sub/part.c
printf 'cmake_minimum_required(VERSION 3.10)\nproject(app C)\nadd_executable(app main.c)\n' > CMakeLists.txt
printf 'fn main() {}\n' > main.rs
printf '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n\n[[bin]]\nname = "app"\npath = "main.rs"\n' > Cargo.toml
printf 'class A { public static void main(String[] a) {} }\n' > A.java
printf '{"name": "app", "version": "1.0.0", "scripts": {"build": "node build.js", "test": "node build.js"}}\n' > package.json
printf 'require("fs").writeFileSync("built.js", "1")\n' > build.js
printf '{"compilerOptions": {"outDir": "out", "types": []}, "files": ["app.ts"]}\n' > tsconfig.json
printf 'const a: number = 1;\n' > app.ts
printf '%%%%\na: ;\n%%%%\n' > grammar.y
printf '%%%%\n.  ;\n%%%%\n' > scanner.l
tar cf some.tar some.txt
[ -x "$(command -v zip)" ] && zip -q some.zip some.txt
printf 'node_modules\n' > .gitignore
git -c init.defaultBranch=main init -q .
git add .
git commit -qm first
git branch merged
git checkout -qb topic
printf 'topic\n' > topic.txt
git add topic.txt
git commit -qm topic
git checkout -q main
printf 'another\n' > another.txt
git add another.txt
git commit -qm another
git remote add origin https://example.org/app.git
printf 'changed\n' >> some.txt
git stash -q
printf 'first line\n' > new-in-patch.txt
git add new-in-patch.txt
git diff --cached > fix.diff
git commit -qm patched
git format-patch -q -1 --stdout > mail.patch
git reset -q --hard HEAD~1
printf 'more\n' >> README.md
