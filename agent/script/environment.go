package script

import (
	"cmp"
	"maps"
	"slices"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environment is what every script gets: PATH, HOME and a language without
// surprises, and extra on top. The rest of our own environment, where secrets
// may be, stays with us.
func Environment(getenv func(string) string, extra map[string]string) []string {
	env := map[string]string{
		"PATH": cmp.Or(getenv("PATH"), defaultPath),
		"HOME": cmp.Or(getenv("HOME"), "/"),
		"LANG": "C.UTF-8",
	}
	maps.Copy(env, extra)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}
