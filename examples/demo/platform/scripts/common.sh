# The folder of the simulated hosts, and what the platform keeps in place of its database.
data=$(cd ../../.. && pwd)
hosts=$data/hosts
platform=$data/platform
mkdir -p "$platform"
