package v1

import "bytes"

// Refresh is the body of POST .../os-upgrade/refresh.
type Refresh struct {
	// Hosts are the hosts that look for what an upgrade would change; empty means all.
	Hosts []string `json:"hosts,omitempty"`
}

// DecodeRefresh reads the body of a refresh request and validates it, as DecodeOSUpgrade does. An
// empty body is the zero Refresh.
func DecodeRefresh(contentType string, body []byte) (Refresh, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return Refresh{}, nil
	}
	return decode(contentType, body, Refresh{}, Refresh.Validate)
}

// Validate returns everything that is wrong with the values, and nothing when all is right.
func (r Refresh) Validate() Problems { return Start{Hosts: r.Hosts}.validateHosts() }

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
