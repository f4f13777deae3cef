#!/usr/bin/env bash
# Install the Debian packages that a purpose needs, by name, if they are missing.
#   tools/deps.sh build|test|lint|bench
# Root and sudo install; anyone else is told exactly what to install.
set -eu

build="gcc make cmake pkg-config libc6-dev libssl-dev libzstd-dev libutf8proc-dev libsqlite3-dev libseccomp-dev libpq-dev"
test="$build libcmocka-dev patch curl openssl sqlite3 zsh mandoc gcovr clang lld libclang-rt-14-dev spin postgresql postgresql-client"
lint="$build libcmocka-dev libpq-dev clang clang-format clang-tidy cppcheck"
bench="$build redis-server redis-tools postgresql postgresql-client libpq-dev procps util-linux"

case "${1:-build}" in
build) wanted=$build ;;
test) wanted=$test ;;
lint) wanted=$lint ;;
bench) wanted=$bench ;;
*) echo "usage: tools/deps.sh build|test|lint|bench" >&2; exit 2 ;;
esac

command -v dpkg-query >/dev/null || exit 0 # not Debian: the compiler will say what is missing
missing=
for package in $wanted; do
  case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
  *"install ok installed"*) ;;
  *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
  as=
elif sudo -n true 2>/dev/null; then
  as=sudo
else
  echo "Holdfast needs these packages:$missing" >&2
  echo "Install them with: apt-get install$missing" >&2
  exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
$as apt-get install -y --no-install-recommends $missing >/dev/null 2>&1 ||
  { $as apt-get update >/dev/null && $as apt-get install -y --no-install-recommends $missing >/dev/null; }
