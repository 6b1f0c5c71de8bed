# To be sourced: Debian's packages of any architecture, verified by apt, without touching the
# host's own package lists. Needs a function `fail`.

# Where from, and what it is signed with.
mirror=${WORKAHEAD_DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# Lists and settings of apt in a directory: `$apt`, and apt's options `${private[@]}`.
#   private_apt DIRECTORY ARCHITECTURE
private_apt() {
  [ -r "$keyring" ] || fail "no $keyring: apt-get install debian-archive-keyring"
  apt=$1
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/sources"
  private=(-q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/sources"
    -o Dir::State::lists="$apt/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache"
    -o APT::Architecture="$2" -o APT::Architectures="$2" -o Acquire::Languages=none
    -o APT::Sandbox::User=root)
}

# The content of these suites, in one word.
update() {
  printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' \
    "$mirror" "$1" "$keyring" >"$apt/sources/debian.sources"
  apt-get "${private[@]}" update >"$apt/update.log" 2>&1
}
