package v1

import (
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// AuditRecord says who did what to what, when, from where and with which result. It is a
// line of the audit log of a tenant. It contains no secrets and no request bodies.
type AuditRecord struct {
	Format int `json:"format"`
	// Seq is the number of the record in the log.
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
	// Tenant is the tenant whose log it is; * is the log of what belongs to all tenants.
	Tenant string `json:"tenant"`
	// By is the name of whoever did it, and As the kind of that name: a user, approle,
	// token or host, a user of the site's machine who ran a command, or the site itself.
	By string `json:"by,omitempty"`
	As string `json:"as,omitempty"`
	// Token is the beginning of the id of the request's token.
	Token string `json:"token,omitempty"`
	// Certificate identifies the client certificate, if the request had one and no token:
	// its serial number and the beginning of its SHA-256.
	Certificate string `json:"certificate,omitempty"`
	// From is the address that the request came from, or local.
	From string `json:"from"`
	// Action is what was done, such as write, delete or start, and Object to what, such as
	// config, calendar/holidays, run/57 or token/4f2a91c07b13.
	Action string `json:"action"`
	Object string `json:"object"`
	// Result is done, refused (nothing was changed), failed (something may have been), or
	// unknown: the process ended before it was known.
	Result string `json:"result"`
	// Status is the HTTP status of the answer, and Error says why the request was not
	// carried out.
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
	// Request is the method and the path of the request, RequestID its X-Request-Id.
	Request   string `json:"request,omitempty"`
	RequestID string `json:"request-id,omitempty"`
	// Detail says more about the object, such as the roles of a token.
	Detail string `json:"detail,omitempty"`
	// Reason is the reason that a person gave.
	Reason string `json:"reason,omitempty"`
	// Before and After are the revisions of the object, as its ETag has them. Diff shows how
	// it was changed, in lines of YAML that begin with "+ ", "- " or two blanks.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Diff   string `json:"diff,omitempty"`
	// Omitted is how many refused requests of the same sender before this one are not in the log.
	Omitted int `json:"omitted,omitempty"`
	// Previous is the hash of the record before, Hash the SHA-256 of this one without it.
	Previous string `json:"previous,omitempty"`
	Hash     string `json:"hash,omitempty"`
}

// The results of an audit record.
const (
	AuditDone    = "done"
	AuditRefused = "refused"
	AuditFailed  = "failed"
	AuditUnknown = "unknown"
)

// What the name in an audit record is the name of.
const (
	AuditUser    = "user"
	AuditApprole = "approle"
	AuditToken   = "token"
	AuditHost    = "host"
	AuditMachine = "machine"
	AuditSite    = "site"
	// AuditPassphrase means that all that is known is the passphrase of the strongbox.
	AuditPassphrase = "passphrase"
)

// AuditLocal is where a command on the machine of the site comes from.
const AuditLocal = "local"

// AuditLog is a part of the audit log of a tenant.
type AuditLog struct {
	// Site is the name of the site that keeps the log.
	Site string `json:"site"`
	// First and Last are the numbers of the first and the last record that are kept; 0 when
	// there are none.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// Records are the records that match the filter, oldest first.
	Records []AuditRecord `json:"records"`
	// Damage lists records that were changed or are missing, among those that were read.
	Damage []AuditDamage `json:"damage,omitempty"`
}

// AuditDamage is a record of an audit log that was changed or is missing.
type AuditDamage struct {
	// Seq is the number of the record that was changed or is missing.
	Seq     uint64 `json:"seq"`
	Message string `json:"message"`
}

// The bounds of the number of audit records in an answer.
const (
	DefaultAudit = 100
	MaxAudit     = 1000
)

// AuditFilter chooses records of an audit log.
type AuditFilter struct {
	// After chooses the records after the one of that number, the oldest of them first. nil
	// chooses the newest.
	After *uint64
	// By is the name of who did it, Object what it was done to: config, or calendar for all
	// calendars and calendar/holidays for one. Empty is any.
	By, Object string
	// Since and Until bound when it was done: from Since on and before Until. Zero does not
	// bound.
	Since, Until time.Time
	// Limit is how many there are at most; 0 is DefaultAudit.
	Limit int
}

// Validate returns everything that is wrong with the values.
func (f AuditFilter) Validate() Problems {
	var found Problems
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		found = append(found, document.Wrong("until", f.Until.Format(time.RFC3339Nano), "is not after since"))
	}
	if f.Limit < 0 || f.Limit > MaxAudit {
		found = append(found, document.OutOfRange("limit", f.Limit, 1, MaxAudit))
	}
	return found
}

// Most is the limit that counts.
func (f AuditFilter) Most() int {
	if f.Limit == 0 {
		return DefaultAudit
	}
	return f.Limit
}

// Keeps reports whether the filter chooses a record, whatever the limit.
func (f AuditFilter) Keeps(r AuditRecord) bool {
	kind, _, _ := strings.Cut(r.Object, "/")
	return (f.After == nil || r.Seq > *f.After) && (f.By == "" || f.By == r.By) && (f.Object == "" || slices.Contains([]string{r.Object, kind}, f.Object)) &&
		!r.At.Before(f.Since) && (f.Until.IsZero() || r.At.Before(f.Until))
}
