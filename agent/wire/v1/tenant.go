package v1

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Tenant is a tenant of the site.
type Tenant struct {
	// Name is its name. It may be absent if the path has it.
	Name string `json:"name,omitempty"`
	// DescriptiveName is a name for people.
	DescriptiveName string `json:"descriptive-name,omitempty"`
}

// Canonical returns the tenant without its name, which is in its path.
func (t Tenant) Canonical() Tenant {
	t.Name = ""
	return t
}

// DecodeTenant reads the body of a write of a tenant and validates it, as DecodeOSUpgrade
// does.
func DecodeTenant(contentType string, body []byte) (Tenant, error) {
	return decode(contentType, body, Tenant{}, Tenant.Validate)
}

// maxDescriptive bounds the name of a tenant for people, in characters.
const maxDescriptive = 200

// Validate returns what is wrong with the values, and nothing when all is right.
func (t Tenant) Validate() (found Problems) {
	if t.Name != "" && !names.Valid(t.Name) {
		found = append(found, document.Wrong("name", t.Name, "is not the name of a tenant; "+names.Form))
	}
	switch count := utf8.RuneCountInString(t.DescriptiveName); {
	case count > maxDescriptive:
		found = append(found, Problem{Field: "descriptive-name", Value: document.Clip(t.DescriptiveName), Message: fmt.Sprintf("%d characters are too many; use at most %d", count, maxDescriptive)})
	case !names.Printable(t.DescriptiveName):
		found = append(found, document.Wrong("descriptive-name", t.DescriptiveName, "has characters that cannot be shown; use letters, digits, signs and blanks on one line"))
	}
	return found
}

// TenantState is a tenant with its state.
type TenantState struct {
	Name            string `json:"name"`
	DescriptiveName string `json:"descriptive-name,omitempty"`
	// Source is site for a tenant of the site's configuration, api for any other.
	Source string `json:"source" oneof:"site api"`
	// Status is active, or removed for a removed tenant whose log and stored data are kept.
	Status string `json:"status" oneof:"active removed"`
	// CreationTime is when it was created through the API.
	CreationTime *time.Time `json:"creation-time,omitempty"`
	// RemovalTime is when it was removed.
	RemovalTime *time.Time `json:"removal-time,omitempty"`
}

// The values of TenantState.Source and TenantState.Status.
const (
	TenantOfSite  = "site"
	TenantOfAPI   = "api"
	TenantActive  = "active"
	TenantRemoved = "removed"
)
