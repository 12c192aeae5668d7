package api

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// audited answers a request that changes something, once its audit record is on disk.
//
// If the site cannot note what it is about to do, it does nothing and answers 503. If it
// has done it and cannot write the record, it answers 500 and says so: what is answered as
// done can be proved. The record is then written later, with the result unknown.
//
// A request with validate=true changes nothing and has no record. A refused one has a
// record if its sender is known, and so does a login or a join that fails: both within
// limits, so that nobody can push out what others did.
func (s *server) audited(route route, c *call) {
	held := &heldWriter{ResponseWriter: c.w, status: http.StatusOK}
	answer := c.w
	c.w = held
	c.audit.At, c.audit.From, c.audit.RequestID = time.Now(), c.RemoteAddr, answer.Header().Get(requestIDHeader)
	c.audit.Action, c.audit.Object, c.audit.Request = route.action, objectOf(route.object, c.Request), c.Method+" "+c.URL.Path
	err := s.enter(route, c)
	switch {
	case c.onMachine() && names.Valid(c.tenant):
		c.audit.Tenant = c.tenant // Also one that is not served yet.
	case c.who.Tenant == access.AnyTenant:
		c.audit.Tenant = s.logOf(c.tenant)
	default:
		c.audit.Tenant = s.logOf(c.who.Tenant)
	}
	switch {
	case err != nil:
		err = s.refuse(c, held, err)
	case c.has("validate"):
		if err := route.handle(s, c); err != nil {
			s.fail(held, c, err)
		}
		held.release()
		return
	default:
		err = s.record(route, c, held)
	}
	if err != nil {
		held.discard()
		s.fail(answer, c, err)
		return
	}
	held.release()
}

// record carries a request out and keeps its record. It begins once the body is there, so a
// client that sends its body slowly, or never, costs no work of the disk.
func (s *server) record(route route, c *call, held *heldWriter) error {
	if _, err := c.body(); err != nil {
		return s.recordUnread(route, c, held, err)
	}
	begun, err := s.Audit.Begin(c.recorded())
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	kept := false
	defer func() {
		if !kept { // The handler panics.
			begun.Abandon()
		}
	}()
	err = route.handle(s, c)
	kept = true
	s.auditResult(c, held, err)
	if !s.keeps(route, c) {
		return begun.Drop()
	}
	if err := begun.Keep(c.recorded()); err != nil {
		s.Log.Error("a request was carried out and is not in the audit log yet", "request", c.audit.Request, "by", c.audit.By, "status", held.status, "error", err)
		return problem(http.StatusInternalServerError, "", "", "the request was answered with status %d, but that cannot be recorded in the audit log; look whether it was carried out before you send it again: %v", held.status, err)
	}
	return nil
}

// recordUnread keeps the record of a request whose body cannot be read.
func (s *server) recordUnread(route route, c *call, held *heldWriter, why error) error {
	s.auditResult(c, held, why)
	if !s.keeps(route, c) {
		return nil
	}
	if err := s.Audit.Keep(c.recorded()); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	return nil
}

// keeps reports whether a request gets a record: within limits if nobody has logged in or
// joined with it.
func (s *server) keeps(route route, c *call) (keep bool) {
	if !route.public || c.audit.By != "" {
		return true
	}
	keep, c.audit.Omitted = s.refusals.Keep(route.action, c.audit.At)
	return keep
}

// refuse refuses a request, and keeps a record of that if its sender is known.
func (s *server) refuse(c *call, held *heldWriter, err error) error {
	s.auditResult(c, held, err)
	if c.audit.By == "" {
		return nil
	}
	c.audit.Result = v1.AuditRefused
	var keep bool
	if keep, c.audit.Omitted = s.refusals.Keep(c.audit.Tenant+"/"+c.audit.As+"/"+c.audit.By, c.audit.At); !keep {
		return nil
	}
	return s.Audit.Keep(c.recorded())
}

// logOf returns whose log has a record of a tenant: a tenant that the site does not serve
// has none, so that nobody makes one by a name that is made up.
func (s *server) logOf(tenant string) string {
	if _, served := s.Tenants.Controller(tenant); !served {
		return audit.AllTenants
	}
	return tenant
}

// auditBy notes who sends a request that gets a record.
func (c *call) auditBy(p proof) {
	if c.route.action == "" {
		return
	}
	c.audit.By, c.audit.As, c.audit.Certificate = p.who.Name, p.as, p.certificate
	if p.token != "" {
		c.audit.Token = shortID(principal.ID(p.token))
	}
}

// shortID is how much of the id of a token is shown.
func shortID(id string) string { return id[:min(len(id), 12)] }

// auditResult answers a request that has failed, and notes its result. Why a body was
// refused is not in the record: the answer repeats what was sent, which may be a secret in
// the wrong place.
func (s *server) auditResult(c *call, held *heldWriter, err error) {
	c.audit.Result = v1.AuditDone
	if err != nil {
		a := s.classify(c.Request, err)
		s.answer(held, c, a)
		c.audit.Result, c.audit.Error = v1.AuditRefused, a.body.Errors[0].Message
		switch {
		case a.status >= http.StatusInternalServerError:
			c.audit.Result = v1.AuditFailed
		case a.status == http.StatusBadRequest, a.status == http.StatusUnsupportedMediaType:
			c.audit.Error = strings.ToLower(http.StatusText(a.status))
		}
	}
	c.audit.Status = held.status
}

// objectOf fills the parameters of the path into the object of a record.
func objectOf(object string, r *http.Request) string {
	for {
		before, rest, found := strings.Cut(object, "{")
		name, after, _ := strings.Cut(rest, "}")
		if !found {
			return object
		}
		value := r.PathValue(name)
		if name == "id" {
			value = shortID(value)
		}
		object = before + strings.NewReplacer("{", "", "}", "").Replace(value) + after
	}
}

// detailOf says what of a run a request is about, or that it is about all runs.
func detailOf(ask v1.Ask) string {
	var parts []string
	add := func(part string, is bool) {
		if is {
			parts = append(parts, part)
		}
	}
	add("all environments", ask.All)
	add("stage "+ask.Stage, ask.Stage != "")
	add("host "+ask.Host, ask.Host != "")
	add("now", ask.Now)
	add("reset failures", ask.ResetFailures)
	return strings.Join(parts, ", ")
}

func runObject(r v1.Run) string { return "run/" + strconv.FormatUint(r.ID, 10) }

// heldWriter holds an answer back until release.
type heldWriter struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (w *heldWriter) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *heldWriter) Write(part []byte) (int, error) { return w.body.Write(part) }

// Unwrap lets http.ResponseController reach the connection.
func (w *heldWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// release sends the answer.
func (w *heldWriter) release() {
	w.ResponseWriter.WriteHeader(w.status)
	if w.body.Len() > 0 {
		_, _ = w.ResponseWriter.Write(w.body.Bytes()) // Whoever asked is gone, or gets it.
	}
}

// discard drops the answer, for another one to be sent.
func (w *heldWriter) discard() {
	for _, name := range []string{"ETag", "Location", "Content-Type"} {
		w.Header().Del(name)
	}
}

// getAudit lists records of an audit log.
func (s *server) getAudit(c *call) error {
	if s.Audit == nil {
		return problem(http.StatusNotFound, "", "", "this site keeps no audit log")
	}
	filter, err := readAuditFilter(c)
	if err != nil {
		return err
	}
	read, err := s.Audit.Read(c.tenant, filter)
	if err != nil {
		return err
	}
	read.Site = s.Site
	return s.sendFields(c, read)
}

// readAuditFilter parses the filter in the query. An empty parameter is an error.
func readAuditFilter(c *call) (v1.AuditFilter, error) {
	for _, name := range []string{"by", "object"} {
		if c.query.Has(name) && c.query.Get(name) == "" {
			return v1.AuditFilter{}, badRequest(name, "", "it is empty; give a value or omit it")
		}
	}
	filter := v1.AuditFilter{By: c.query.Get("by"), Object: c.query.Get("object")}
	var err error
	if filter.Since, err = instant(c, "since"); err != nil {
		return v1.AuditFilter{}, err
	}
	if filter.Until, err = instant(c, "until"); err != nil {
		return v1.AuditFilter{}, err
	}
	if text := c.query.Get("after"); c.query.Has("after") {
		after, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return v1.AuditFilter{}, badRequest("after", text, "is not the number of a record; use the seq of one, or 0")
		}
		filter.After = &after
	}
	if text := c.query.Get("limit"); c.query.Has("limit") {
		if filter.Limit, err = strconv.Atoi(text); err != nil || filter.Limit < 1 {
			return v1.AuditFilter{}, badRequest("limit", text, "is not a number of records; use 1 to "+strconv.Itoa(v1.MaxAudit))
		}
	}
	if wrong := filter.Validate(); len(wrong) > 0 {
		return v1.AuditFilter{}, wrong
	}
	return filter, nil
}
