package rollout

import "testing"

func TestLocate(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		"max-failures":                    "max_failures",
		"timeouts":                        "command_timeouts",
		"timeouts.reboot":                 "command_timeouts.reboot",
		"stages[1].max-unavailable":       "stages[1].max_unavailable",
		"stages[1].match.hosts[3]":        "stages[1].match.hosts",
		"stages[1].match.labels.ring":     "stages[1].match.labels",
		`stages[1].match.labels["a.b/c"]`: "stages[1].match.labels",
		"exempt.roles[0]":                 "exempt.roles",
		"checks.before-host[0].timeout":   "checks.before_host[0].timeout",
		"checks.fleet[0].args[2]":         "checks.fleet[0].args[2]",
		"hooks.drain.retry-interval":      "hooks.drain.retry_interval",
		"tenant":                          "",
		"":                                "",
		"stages[x].name":                  "",
	} {
		at, ok := kind.Locate(field)
		if got := at.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%q: got %s %v, want %s", field, got, ok, want)
		}
	}
}
