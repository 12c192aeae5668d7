package v1

import "bytes"

// Refresh is the body of POST .../os-upgrade/refresh.
type Refresh struct {
	// Hosts, Labels, Roles and Environments choose the hosts that look for what an upgrade would
	// change: those that are of one of these names, have all these labels and one of these roles,
	// and are in one of these environments. The value of a label may be several, joined by commas:
	// one of them. Without any, all hosts look.
	Hosts        []string          `json:"hosts,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Roles        []string          `json:"roles,omitempty"`
	Environments []string          `json:"environments,omitempty"`
}

// Selector returns what the request chooses hosts by.
func (r Refresh) Selector() Selector { return Selector(r) }

// DecodeRefresh reads the body of a refresh request and validates it, as DecodeOSUpgrade does. An
// empty body is the zero Refresh.
func DecodeRefresh(contentType string, body []byte) (Refresh, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return Refresh{}, nil
	}
	return decode(contentType, body, Refresh{}, Refresh.Validate)
}

// Validate returns everything that is wrong with the values, and nothing when all is right.
func (r Refresh) Validate() Problems { return r.Selector().Validate() }

// Refreshed says which hosts look now for what an upgrade would change.
type Refreshed struct {
	// Asked is how many were asked. Each begins within WithinSeconds, at a moment of its own,
	// so that they do not all fetch from a mirror at once.
	Asked         int `json:"asked"`
	WithinSeconds int `json:"within-seconds,omitempty"`
	// Silent is how many were not asked because they are silent, and Recent how many because
	// they were asked less than a minute ago.
	Silent int `json:"silent,omitempty"`
	Recent int `json:"recent,omitempty"`
}
