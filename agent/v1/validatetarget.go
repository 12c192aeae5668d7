package v1

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
)

const (
	maxArgs   = 100
	maxArg    = 4096 // As PATH_MAX of Linux: an argument may be a path.
	maxURL    = 2048
	maxUnit   = 255 // UNIT_NAME_MAX of systemd.
	maxScript = 255 // NAME_MAX of Linux.
)

var (
	scriptPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	// unitPattern is that of systemd.unit(5), without a "-" at the beginning,
	// which systemctl would take for an option.
	unitPattern = regexp.MustCompile(`^[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]*\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$`)
)

func (i *inspector) script(field, name string, args []string) {
	if len(name) > maxScript || !scriptPattern.MatchString(name) {
		i.wrong(field+".script", name, `is not the name of a script; use letters, digits, "-", "_" and ".", with no "." or "-" at the beginning and no folder`)
	}
	if !i.limit(field+".args", len(args), maxArgs) {
		return
	}
	for n, arg := range args {
		if len(arg) > maxArg || strings.ContainsRune(arg, 0) {
			i.wrong(fmt.Sprintf("%s.args[%d]", field, n), arg, fmt.Sprintf("is not an argument; use at most %d bytes, none of them zero", maxArg))
		}
	}
}

func (i *inspector) url(field, text string) {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxURL || strings.ContainsFunc(text, unprintable) || u.Scheme != "http" && u.Scheme != "https" ||
		!validTarget(u.Hostname()) || !validPort(u.Port(), true) {
		i.wrong(field, text, "is not an address to call; use http or https with a host, such as http://127.0.0.1:8080/healthz")
	}
}

// address checks host:port. It does not use net.SplitHostPort, since this
// package has nothing to do with networks.
func (i *inspector) address(field, text string) {
	host, port := text, ""
	if colon := strings.LastIndexByte(text, ':'); colon >= 0 {
		host, port = text[:colon], text[colon+1:]
	}
	valid := ValidHost(host)
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		inner, bracketed = strings.CutSuffix(inner, "]")
		valid = bracketed && !ValidHost(inner) && validTarget(inner)
	}
	if !valid || !validPort(port, false) {
		i.wrong(field, text, "is not an address; use a host and a port such as 127.0.0.1:22 or [::1]:22")
	}
}

// validTarget reports whether text is the name or the address of a host.
func validTarget(text string) bool {
	_, err := netip.ParseAddr(text)
	return ValidHost(text) || err == nil && !strings.ContainsFunc(text, unprintable)
}

func validPort(text string, absent bool) bool {
	if text == "" {
		return absent
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

func (i *inspector) unit(field, name string) {
	if len(name) > maxUnit || !unitPattern.MatchString(name) {
		i.wrong(field, name, "is not the name of a systemd unit; use one with its type, such as nginx.service")
	}
}

func (i *inspector) disk(field, folder, free string) {
	if !path.IsAbs(folder) || len(folder) > maxArg || strings.ContainsFunc(folder, unprintable) {
		i.wrong(field+".path", folder, `is not an absolute path; use one that begins with "/", such as /var`)
	}
	if _, _, err := ParseMinFree(free); err != nil {
		i.failed(field+".min-free", free, err)
	}
}
