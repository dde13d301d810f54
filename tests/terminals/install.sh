#!/bin/sh
# Installs the terminals that `record.py` and `drive.py` use, on Debian 12, as root.
#
#   tests/terminals/install.sh           what the distribution has now
#   tests/terminals/install.sh --pinned  the versions in packages.txt, those that were seen
#
# Says at the end which versions differ from packages.txt: name the version with every claim.
set -eu
list=$(dirname "$0")/packages.txt
case "${1:-}" in
--pinned) names=$(awk '{print $1 "=" $2}' "$list") ;;
*) names=$(awk '{print $1}' "$list") ;;
esac
apt-get update -q
# shellcheck disable=SC2086 - a word for each package
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $names
while read -r name seen; do
	now=$(dpkg-query -W -f '${Version}' "$name")
	[ "$now" = "$seen" ] || echo "$name: $now here, $seen in packages.txt"
done <"$list"
