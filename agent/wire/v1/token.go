package v1

import (
	"bytes"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// NewToken is the body of POST .../strongbox/tokens.
type NewToken struct {
	// Name is the name of the token's holder; runs started with the token carry this name.
	Name string `json:"name"`
	// Allow are the roles of the token.
	Allow []string `json:"allow"`
	// Valid is its lifetime; empty means until it is revoked.
	Valid string `json:"valid,omitempty"`
}

// maxRoles bounds the roles of a token.
const maxRoles = 20

// DecodeNewToken reads the body of a request for a token and validates it, as
// DecodeOSUpgrade does. Which names and roles there are is decided where tokens are made.
func DecodeNewToken(contentType string, body []byte) (NewToken, error) {
	return decode(contentType, body, NewToken{}, NewToken.Validate)
}

// Validate returns what is wrong with the values, and nothing when all is right.
func (n NewToken) Validate() Problems {
	var found Problems
	if len(n.Allow) == 0 || len(n.Allow) > maxRoles {
		found = append(found, document.Wrong("allow", strconv.Itoa(len(n.Allow)), "roles are as good as none; give one at least"))
	}
	if _, err := lifetime(n.Valid); err != nil {
		found = append(found, Problem{Field: "valid", Value: document.Clip(n.Valid), Message: err.Error()})
	}
	return found
}

// Duration returns how long the token is good; zero means until it is withdrawn.
func (n NewToken) Duration() (time.Duration, error) { return lifetime(n.Valid) }

// maxLifetime is the longest life of a token that has an end, ten years.
const maxLifetime = 3650 * 24 * time.Hour

// lifetime parses a time that may be absent.
func lifetime(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	return window.ParseDurationWithin(text, time.Second, maxLifetime)
}

// Rotation is the body of POST .../strongbox/tokens/{id}/rotate.
type Rotation struct {
	// Overlap is how long the old token stays valid; empty means not at all.
	Overlap string `json:"overlap,omitempty"`
}

// DecodeRotation reads the body of a rotation and validates it, as DecodeOSUpgrade does. An
// empty body is the zero Rotation.
func DecodeRotation(contentType string, body []byte) (Rotation, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return Rotation{}, nil
	}
	return decode(contentType, body, Rotation{}, Rotation.Validate)
}

// Validate returns what is wrong with the values, and nothing when all is right.
func (r Rotation) Validate() Problems {
	if _, err := lifetime(r.Overlap); err != nil {
		return Problems{{Field: "overlap", Value: document.Clip(r.Overlap), Message: err.Error()}}
	}
	return nil
}

// Duration returns how long the old token stays good.
func (r Rotation) Duration() (time.Duration, error) { return lifetime(r.Overlap) }

// Token is a token as GET .../strongbox/tokens lists it.
type Token struct {
	// ID is the SHA-256 of the token's text.
	ID     string `json:"id"`
	Name   string `json:"name"`
	Tenant string `json:"tenant"`
	// Allow lists its roles.
	Allow        []string   `json:"allow"`
	CreationTime time.Time  `json:"creation-time"`
	Expires      *time.Time `json:"expires,omitempty"`
	// Login is user or approle for the token of a login. Its roles are the current roles of
	// the user or approle.
	Login string `json:"login,omitempty"`
	// LastUsed is when it was last used, to the minute.
	LastUsed *time.Time `json:"last-used,omitempty"`
	// Token is the text, only in the answer to POST: the site does not keep it.
	Token string `json:"token,omitempty"`
}
