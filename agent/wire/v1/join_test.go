package v1_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/certtest"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestFingerprint checks the fingerprint of one certificate and of several, whatever
// is around them.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)
	one, other := certtest.Make(t, "one", now, now.Add(time.Hour)), certtest.Make(t, "other", now, now.Add(time.Hour))
	of := func(text []byte) string {
		t.Helper()
		fingerprint, err := v1.Fingerprint(text)
		if err != nil {
			t.Fatal(err)
		}
		return fingerprint
	}
	if of(one.Cert) != of(append([]byte("text\n"), one.Cert...)) || of(one.Cert) == of(other.Cert) || of(one.Cert) == of(append(bytes.Clone(one.Cert), other.Cert...)) {
		t.Error("the fingerprint is not that of the certificates")
	}
	if _, err := v1.Fingerprint(one.Key); err == nil {
		t.Error("a key has a fingerprint")
	}
}

// TestJoinRequests checks that of a request to join, and of one for a join token, each
// wrong member is named.
func TestJoinRequests(t *testing.T) {
	t.Parallel()
	decodeJoin := func(body string) error { _, err := v1.DecodeJoin("", []byte(body)); return err }
	decodeToken := func(body string) error { _, err := v1.DecodeNewJoinToken("", []byte(body)); return err }
	decodeVerdict := func(body string) error { _, err := v1.DecodeHostVerdict("", []byte(body)); return err }
	labels := func(count int) string {
		all := map[string]string{}
		for i := range count {
			all["l"+strconv.Itoa(i)] = "x"
		}
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"a join":                            {decodeJoin(`{"host":"h01","public-key":"U1","proof":"x"}`), nil},
		"an empty join":                     {decodeJoin(`{}`), []string{"host", "public-key", "proof"}},
		"a join with more":                  {decodeJoin(`{"host":"h01","public-key":"U1","proof":"x","tenant":"beta"}`), []string{"tenant"}},
		"a join with a long key":            {decodeJoin(`{"host":"a/b","public-key":"` + strings.Repeat("U", 1000) + `","proof":"x"}`), []string{"host", "public-key"}},
		"a token":                           {decodeToken(`{"host":"web-*","application":"a"}`), nil},
		"a token for all":                   {decodeToken(`{"host":"*","application":"a","valid":"7d","replace":true}`), nil},
		"an empty token":                    {decodeToken(`{}`), []string{"host", "application"}},
		"a token with a class":              {decodeToken(`{"host":"web-[0-9]","application":"a"}`), []string{"host"}},
		"a token for ever":                  {decodeToken(`{"host":"h","application":"a","valid":"31d"}`), []string{"valid", "to 7d"}},
		"a token for no time":               {decodeToken(`{"host":"h","application":"a","valid":"0s"}`), []string{"valid"}},
		"a token for many":                  {decodeToken(`{"host":"shop-*","application":"a","max-hosts":40,"labels":{"shop":"basel","new":""},"approve":true}`), nil},
		"for many with any name, looked at": {decodeToken(`{"host":"*","application":"a","max-hosts":40,"approve":true}`), nil},
		"for many with any name":            {decodeToken(`{"host":"*","application":"a","max-hosts":40}`), []string{"host", "fits every name"}},
		"for many with hardly a name":       {decodeToken(`{"host":"*-*.*","application":"a","max-hosts":2}`), []string{"host"}},
		"for many with one name":            {decodeToken(`{"host":"shop","application":"a","max-hosts":2}`), []string{"max-hosts", "such as shop-*"}},
		"for no host":                       {decodeToken(`{"host":"h","application":"a","max-hosts":0}`), []string{"max-hosts"}},
		"for fewer than none":               {decodeToken(`{"host":"h-*","application":"a","max-hosts":-1}`), []string{"max-hosts"}},
		"for too many":                      {decodeToken(`{"host":"h-*","application":"a","max-hosts":1001}`), []string{"max-hosts", "1000"}},
		"for half a host":                   {decodeToken(`{"host":"h-*","application":"a","max-hosts":1.5}`), []string{"max-hosts"}},
		"for a text of hosts":               {decodeToken(`{"host":"h-*","application":"a","max-hosts":"all"}`), []string{"max-hosts"}},
		"a label with a blank":              {decodeToken(`{"host":"h","application":"a","labels":{"a b":"c"}}`), []string{"labels"}},
		"a label with a long value":         {decodeToken(`{"host":"h","application":"a","labels":{"a":"` + strings.Repeat("x", 64) + `"}}`), []string{"labels"}},
		"a label that is a number":          {decodeToken(`{"host":"h","application":"a","labels":{"a":1}}`), []string{"labels"}},
		"too many labels":                   {decodeToken(`{"host":"h","application":"a","labels":` + labels(51) + `}`), []string{"labels", "at most 50"}},
		"a verdict":                         {decodeVerdict(`{"public-key":"U1"}`), nil},
		"a verdict on nobody":               {decodeVerdict(`{}`), []string{"public-key"}},
		"a verdict on a long key":           {decodeVerdict(`{"public-key":"` + strings.Repeat("U", 1000) + `"}`), []string{"public-key"}},
		"a token for another time":          {decodeToken(`{"host":"h","application":"a","valid":"soon"}`), []string{"valid"}},
	} {
		if (c.err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, c.err)
		}
		for _, part := range c.want {
			if c.err == nil || !strings.Contains(c.err.Error(), part) {
				t.Errorf("%s: %v does not name %s", name, c.err, part)
			}
		}
	}
}
