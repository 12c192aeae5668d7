package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// getEnvironmentStates lists what each environment is doing, in pages as getHosts does.
func (s *server) getEnvironmentStates(c *call) error {
	after, limit, err := readPage(c, "environments", v1.MaxEnvironments)
	if err != nil {
		return err
	}
	all, err := c.controller.EnvironmentStatuses(c.Context())
	if err != nil {
		return err
	}
	name := func(e v1.EnvironmentStatus) string { return e.Name }
	first, exact := slices.BinarySearchFunc(all, after, func(e v1.EnvironmentStatus, name string) int { return strings.Compare(e.Name, name) })
	if exact {
		first++
	}
	if all = all[first:]; limit > 0 && len(all) > limit {
		all = all[:limit]
		sendNext(c, name(all[limit-1]))
	}
	return sendList(s, c, all, name)
}

// readPage reads which page of a list is asked for: the entries after a name, at most limit; 0 means
// all.
func readPage(c *call, noun string, most int) (after string, limit int, err error) {
	if after = c.query.Get("after"); c.has("after") && after == "" {
		return "", 0, badRequest("after", "", "it is empty; give a name or omit it")
	}
	if text := c.query.Get("limit"); c.has("limit") {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > most {
			return "", 0, badRequest("limit", text, "is not a number of "+noun+"; use 1 to "+strconv.Itoa(most))
		}
	}
	if c.has("count") && (after != "" || limit > 0) {
		return "", 0, badRequest("count", "", "it counts all "+noun+"; omit after and limit")
	}
	return after, limit, nil
}

// sendNext sends where the next page is, which begins after a name (RFC 8288).
func sendNext(c *call, after string) {
	next := maps.Clone(c.query)
	next.Set("after", after)
	c.w.Header().Set("Link", "<"+c.URL.EscapedPath()+"?"+next.Encode()+`>; rel="next"`)
}

// getEnvironmentState shows what an environment is doing.
func (s *server) getEnvironmentState(c *call) error {
	status, err := c.controller.EnvironmentStatus(c.Context(), c.PathValue("name"))
	if err != nil {
		return err
	}
	return s.sendFields(c, status)
}
