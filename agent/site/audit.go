package site

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// auditFolder is where a site keeps its audit logs.
const auditFolder = "audit"

// OpenAudit opens the audit logs of a site in dir. Only the process that holds the lock of the
// folder may.
func OpenAudit(dir string) *audit.Logs { return audit.Open(filepath.Join(dir, auditFolder)) }

// checkAudit gives a record to what the process before had begun, and tells what is wrong
// with the newest records. A site whose audit logs cannot be written still runs and upgrades
// its hosts: what people want to change is refused by the API.
func (s *Site) checkAudit() {
	if err := s.audit.Resume(); err != nil {
		s.log.Error("ALARM: the audit log cannot be written, so no change is accepted", "error", err)
	}
	tenants, err := s.audit.Tenants()
	if err != nil {
		s.log.Error("cannot list the audit logs", "error", err)
	}
	for _, tenant := range tenants {
		read, err := s.audit.Read(tenant, v1.AuditFilter{Limit: 1})
		if err != nil {
			s.log.Error("cannot read the audit log", "tenant", tenant, "error", err)
		}
		for _, d := range read.Damage {
			s.log.Error("ALARM: the audit log is not as it was written", "tenant", tenant, "damage", d.Message)
		}
	}
}

// rotated returns what keeps a record of each key that a host has registered in place of
// its own. A host that asks for keys all the time has few records.
func (s *Site) rotated(served []string) func(id natsd.Identity, public string, register func() error) error {
	var limit audit.Limit
	return func(id natsd.Identity, public string, register func() error) error {
		r := v1.AuditRecord{
			Tenant: audit.AllTenants, By: id.Host, As: v1.AuditHost, From: "the log", Action: "rotate-key", Object: "host/" + id.Host,
			Detail: "key " + public + "; the ones before are withdrawn once the host has connected with it",
		}
		if slices.Contains(served, id.Tenant) {
			r.Tenant = id.Tenant
		}
		keep, omitted := limit.Keep(id.Tenant+"/"+id.Host, time.Now())
		if !keep {
			return register()
		}
		r.Omitted = omitted
		return s.audit.Do(r, func(*v1.AuditRecord) error { return register() })
	}
}
