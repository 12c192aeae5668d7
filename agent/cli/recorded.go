//go:build !worker

package cli

import (
	"errors"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// recorded does something to the folder of a site, and keeps an audit record of it: these
// commands go past the API. The function completes the record; what it prints comes after
// that, so that a secret is not told before it is on record who made it.
func recorded(dir string, r v1.AuditRecord, do func(r *v1.AuditRecord) error) error {
	logs := site.OpenAudit(dir)
	err := logs.Do(byMachine(r), do)
	return errors.Join(err, logs.Close())
}

// recordedForAll keeps a record of something that was done, in the log of each tenant.
func recordedForAll(dir string, r v1.AuditRecord) error {
	logs := site.OpenAudit(dir)
	tenants, err := logs.Tenants()
	errs := []error{err}
	if !slices.Contains(tenants, audit.AllTenants) {
		tenants = append(tenants, audit.AllTenants)
	}
	for _, r.Tenant = range tenants {
		errs = append(errs, logs.Keep(byMachine(r)))
	}
	return errors.Join(append(errs, logs.Close())...)
}

func byMachine(r v1.AuditRecord) v1.AuditRecord {
	r.By, r.As, r.From, r.Result = whoami(), v1.AuditMachine, v1.AuditLocal, v1.AuditDone
	if !names.Valid(r.Tenant) { // Of all tenants, or mistyped: nobody makes a log by that.
		r.Tenant = audit.AllTenants
	}
	return r
}

// shortIDOf is how much of an id a record has.
func shortIDOf(id string) string { return id[:min(len(id), shortID)] }
