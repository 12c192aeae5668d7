package audit

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// SyslogID is the SD-ID of the structured data (RFC 5424 7). Its number is the one that is
// reserved for documents (RFC 5612): the project has none of its own.
const SyslogID = "osupgrade@32473"

// The facility of audit logs (RFC 5424 6.2.1), and the severities of what was done, was
// refused, and has failed.
const (
	logAudit                 = 13
	isError, warning, notice = 3, 4, 5
)

// Syslog returns a record as a message of syslog (RFC 5424) in one line: all but the diff
// is structured data.
func Syslog(site string, r v1.AuditRecord) string {
	severity := notice
	switch r.Result {
	case v1.AuditDone:
	case v1.AuditRefused:
		severity = warning
	default:
		severity = isError
	}
	var data strings.Builder
	add := func(name, value string) {
		if value != "" && value != "0" {
			fmt.Fprintf(&data, ` %s="%s"`, name, syslogValue.Replace(oneLine(value)))
		}
	}
	add("seq", strconv.FormatUint(r.Seq, 10))
	add("tenant", r.Tenant)
	add("by", r.By)
	add("as", r.As)
	add("token", r.Token)
	add("certificate", r.Certificate)
	add("from", r.From)
	add("action", r.Action)
	add("object", r.Object)
	add("result", r.Result)
	add("status", strconv.Itoa(r.Status))
	add("error", r.Error)
	add("request", r.Request)
	add("request-id", r.RequestID)
	add("detail", r.Detail)
	add("reason", r.Reason)
	add("before", r.Before)
	add("after", r.After)
	add("omitted", strconv.Itoa(r.Omitted))
	add("previous", r.Previous)
	add("hash", r.Hash)
	return fmt.Sprintf("<%d>1 %s %s osupgrade - %s [%s%s] \xef\xbb\xbf%s", logAudit*8+severity, r.At.UTC().Format(time.RFC3339Nano), syslogName(site, 255), syslogName(r.Action, 32),
		SyslogID, data.String(), oneLine(Sentence(r)))
}

// syslogValue escapes a value of structured data (RFC 5424 6.3.3).
var syslogValue = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `]`, `\]`)

// oneLine replaces what does not print: a line break would end the message, and an escape
// sequence would change the screen of whoever reads it.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, text)
}

// syslogName makes a name of the head of a message: printable ASCII without blanks.
func syslogName(name string, most int) string {
	name = strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return '?'
		}
		return c
	}, name)
	if name == "" {
		return "-"
	}
	return name[:min(len(name), most)]
}

// Sender says who sent the request of a record.
func Sender(r v1.AuditRecord) string {
	if r.By == "" {
		return "somebody"
	}
	sender := strings.TrimSpace(r.As + " " + r.By)
	if r.Certificate != "" {
		sender += " by certificate"
	}
	return sender
}

// Sentence says what a record says.
func Sentence(r v1.AuditRecord) string {
	text := fmt.Sprintf("%s from %s: %s %s, %s", Sender(r), r.From, r.Action, r.Object, r.Result)
	for _, more := range []string{r.Detail, r.Reason, r.Error} {
		if more != "" {
			text += "; " + more
		}
	}
	return text
}
