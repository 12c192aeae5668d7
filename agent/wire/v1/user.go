package v1

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// User is a person who logs in with a password.
type User struct {
	// Name is its name within the tenant. It may be absent if the path has it.
	Name string `json:"name,omitempty"`
	// Password is never shown. A new password ends the logins of the user. A write without
	// a password keeps the current one.
	Password string `json:"password,omitempty"`
	// TokenPolicies are the roles of the user. A change applies to its logins at once.
	TokenPolicies []string `json:"token-policies" most:"20"`
	// TokenTTL is the lifetime of the token of a login; a refresh extends it. Empty means
	// 12h.
	TokenTTL string `json:"token-ttl,omitempty"`
	// TokenMaxTTL is how long after the login a refresh can extend it. Empty means 14d.
	TokenMaxTTL string `json:"token-max-ttl,omitempty"`
}

// Canonical returns what a server shows of the user, in one form: without name and password.
func (u User) Canonical() User {
	u.Name, u.Password = "", ""
	u.TokenPolicies = sortedRoles(u.TokenPolicies)
	u.TokenTTL, u.TokenMaxTTL = OfSeconds(Seconds(u.TokenTTL)), OfSeconds(Seconds(u.TokenMaxTTL))
	return u
}

// sortedRoles returns roles in one order, each once: their order has no meaning.
func sortedRoles(roles []string) []string { return slices.Compact(slices.Sorted(slices.Values(roles))) }

// DecodeUser reads the body of a write of a user and validates it, as DecodeOSUpgrade
// does. No problem repeats the password. Which names and roles there are is decided where
// users are kept.
func DecodeUser(contentType string, body []byte) (User, error) {
	return decode(contentType, body, User{}, User.Validate)
}

// Validate returns what is wrong with the values, and nothing when all is right.
func (u User) Validate() Problems {
	found := validatePolicies(u.TokenPolicies)
	if len(u.Password) > maxSecret {
		found = append(found, Problem{Field: "password", Message: "it is too long; use at most " + strconv.Itoa(maxSecret) + " bytes"})
	}
	return append(found, validateLives(u.TokenTTL, u.TokenMaxTTL)...)
}

func validatePolicies(policies []string) Problems {
	switch {
	case len(policies) == 0:
		return Problems{{Field: "token-policies", Message: "without a role nothing is allowed; give one at least"}}
	case len(policies) > maxRoles:
		return Problems{document.TooMany("token-policies", len(policies), maxRoles)}
	}
	return nil
}

// validateLives checks how long the token of a login is good.
func validateLives(ttl, most string) (found Problems) {
	_, ttlErr := lifetime(ttl)
	_, mostErr := lifetime(most)
	if ttlErr != nil {
		found = append(found, Problem{Field: "token-ttl", Value: document.Clip(ttl), Message: ttlErr.Error()})
	}
	if mostErr != nil {
		found = append(found, Problem{Field: "token-max-ttl", Value: document.Clip(most), Message: mostErr.Error()})
	}
	return found
}

// Seconds returns the seconds of a duration of a login that was validated; 0 for none.
func Seconds(text string) int {
	length, _ := lifetime(text)
	return int(length / time.Second)
}

// OfSeconds returns the text of so many seconds; empty for 0.
func OfSeconds(seconds int) string {
	if seconds == 0 {
		return ""
	}
	return window.FormatDuration(time.Duration(seconds) * time.Second)
}

// UserState is a user with its state.
type UserState struct {
	Name          string   `json:"name"`
	TokenPolicies []string `json:"token-policies"`
	TokenTTL      string   `json:"token-ttl,omitempty"`
	TokenMaxTTL   string   `json:"token-max-ttl,omitempty"`
	// PasswordSet is when the password was set; earlier logins have ended.
	PasswordSet time.Time `json:"password-set"`
}

// Approle is a program that logs in with its role-id and a secret-id.
type Approle struct {
	// Name is its name within the tenant. It may be absent if the path has it.
	Name string `json:"name,omitempty"`
	// TokenPolicies are the roles of the approle. A change applies to its logins at once.
	TokenPolicies []string `json:"token-policies" most:"20"`
	// SecretIDNumUses is the default number of logins that a secret-id allows; 0 means any
	// number. If absent, 1.
	SecretIDNumUses *int `json:"secret-id-num-uses,omitempty" within:"0 1000000"`
	// SecretIDTTL is the default lifetime of a secret-id; 0s means that it never expires.
	// Empty means 1h.
	SecretIDTTL string `json:"secret-id-ttl,omitempty"`
	// TokenTTL is the lifetime of the token of a login; a refresh extends it. Empty means
	// 1d.
	TokenTTL string `json:"token-ttl,omitempty"`
	// TokenMaxTTL is how long after the login a refresh can extend it. Empty means 30d.
	TokenMaxTTL string `json:"token-max-ttl,omitempty"`
}

// Canonical returns what a server shows of the approle, in one form and without its name.
func (a Approle) Canonical() Approle {
	a.Name = ""
	a.TokenPolicies = sortedRoles(a.TokenPolicies)
	a.TokenTTL, a.TokenMaxTTL = OfSeconds(Seconds(a.TokenTTL)), OfSeconds(Seconds(a.TokenMaxTTL))
	if seconds := SecretSeconds(a.SecretIDTTL); seconds != nil {
		a.SecretIDTTL = cmp.Or(OfSeconds(*seconds), "0s")
	}
	return a
}

// DecodeApprole reads the body of a write of an approle and validates it, as
// DecodeOSUpgrade does.
func DecodeApprole(contentType string, body []byte) (Approle, error) {
	return decode(contentType, body, Approle{}, Approle.Validate)
}

// Validate returns what is wrong with the values, and nothing when all is right.
func (a Approle) Validate() Problems {
	found := append(validatePolicies(a.TokenPolicies), validateLives(a.TokenTTL, a.TokenMaxTTL)...)
	return append(found, validateSecretTTL(a.SecretIDTTL)...)
}

func validateSecretTTL(ttl string) Problems {
	if ttl == "" {
		return nil
	}
	if _, err := window.ParseDurationWithin(ttl, 0, maxLifetime); err != nil {
		return Problems{{Field: "secret-id-ttl", Value: document.Clip(ttl), Message: err.Error()}}
	}
	return nil
}

// SecretSeconds returns the seconds of a secret-id-ttl that was validated; nil for none.
func SecretSeconds(ttl string) *int {
	if ttl == "" {
		return nil
	}
	length, _ := window.ParseDuration(ttl)
	seconds := int(length / time.Second)
	return &seconds
}

// ApproleState is an approle with its state.
type ApproleState struct {
	Name            string   `json:"name"`
	TokenPolicies   []string `json:"token-policies"`
	SecretIDNumUses *int     `json:"secret-id-num-uses,omitempty"`
	SecretIDTTL     string   `json:"secret-id-ttl,omitempty"`
	TokenTTL        string   `json:"token-ttl,omitempty"`
	TokenMaxTTL     string   `json:"token-max-ttl,omitempty"`
	// RoleID identifies the approle in a login. It is not a secret.
	RoleID       string    `json:"role-id"`
	CreationTime time.Time `json:"creation-time"`
}

// NewSecretID is the body of a request for a secret-id.
type NewSecretID struct {
	// SecretIDNumUses is the number of logins that it allows; 0 means any number. If
	// absent, the default of the approle applies.
	SecretIDNumUses *int `json:"secret-id-num-uses,omitempty" within:"0 1000000"`
	// SecretIDTTL is its lifetime; 0s means that it never expires. If empty, the default of
	// the approle applies.
	SecretIDTTL string `json:"secret-id-ttl,omitempty"`
}

// DecodeNewSecretID reads the body of a request for a secret-id and validates it, as
// DecodeOSUpgrade does. An empty body is the zero NewSecretID.
func DecodeNewSecretID(contentType string, body []byte) (NewSecretID, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return NewSecretID{}, nil
	}
	return decode(contentType, body, NewSecretID{}, NewSecretID.Validate)
}

// Validate returns what is wrong with the values, and nothing when all is right.
func (n NewSecretID) Validate() Problems { return validateSecretTTL(n.SecretIDTTL) }

// SecretID is a secret-id of an approle.
type SecretID struct {
	// ID is the SHA-256 of the text.
	ID     string `json:"id"`
	RoleID string `json:"role-id"`
	// SecretIDNumUses is how many logins are left; if absent, any number.
	SecretIDNumUses *int       `json:"secret-id-num-uses,omitempty"`
	CreationTime    *time.Time `json:"creation-time,omitempty"`
	Expires         *time.Time `json:"expires,omitempty"`
	// SecretID is the text, only in the answer to POST: the site does not keep it.
	SecretID string `json:"secret-id,omitempty"`
}
