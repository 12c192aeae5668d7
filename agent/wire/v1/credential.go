package v1

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Credential is a token, user, approle or host key, without its secret.
type Credential struct {
	// ID is unique in the site. The id of a key is its public part.
	ID string `json:"id"`
	// Kind is token, user, approle or key (of a host).
	Kind string `json:"kind"`
	// Tenant is its tenant, or * for all tenants. Owner is the name of its owner.
	Tenant       string    `json:"tenant,omitempty"`
	Owner        string    `json:"owner,omitempty"`
	CreationTime time.Time `json:"creation-time"`
	// LastUsed is when a token was last used, to the minute.
	LastUsed *time.Time `json:"last-used,omitempty"`
	// Allow lists its roles.
	Allow []string `json:"allow,omitempty"`
	// Expires is when a token expires. Login is user or approle for the token of a login.
	Expires *time.Time `json:"expires,omitempty"`
	Login   string     `json:"login,omitempty"`
	// RoleID is the role-id of an approle. It is not a secret.
	RoleID string `json:"role-id,omitempty"`
	// Damage says why its file cannot be read; its owner is then unknown.
	Damage string `json:"damage,omitempty"`
}

// The kinds of credentials.
const (
	TokenCredential   = "token"
	UserCredential    = "user"
	ApproleCredential = "approle"
	KeyCredential     = "key"
)

// NewHostKey is the body of a request that registers the key of a host.
type NewHostKey struct {
	// PublicKey is the public part of the key; the seed is the host's.
	PublicKey string `json:"public-key"`
	// Replace allows the request for a host that already has a key. The old key is revoked
	// once the host has connected with the new one.
	Replace bool `json:"replace,omitempty"`
}

// DecodeNewHostKey reads the body of a request and validates it, as DecodeOSUpgrade does.
func DecodeNewHostKey(contentType string, body []byte) (NewHostKey, error) {
	return decode(contentType, body, NewHostKey{}, NewHostKey.Validate)
}

// maxPublicKey bounds the length of a public key.
const maxPublicKey = 100

// Validate returns what is wrong with the values, and nothing when all is right.
func (k NewHostKey) Validate() Problems {
	if k.PublicKey == "" || len(k.PublicKey) > maxPublicKey {
		return Problems{document.Wrong("public-key", k.PublicKey, "is not the public key of a host")}
	}
	return nil
}

// HostKey is the key of a host.
type HostKey struct {
	Tenant    string `json:"tenant"`
	Host      string `json:"host"`
	PublicKey string `json:"public-key"`
}

// ValidHostName returns what is wrong with the name of a host.
func ValidHostName(host string) Problems {
	if !names.ValidHost(host) {
		return Problems{document.Wrong("host", host, `is not a host name; use letters, digits, "-", "_" and "."`)}
	}
	return nil
}
