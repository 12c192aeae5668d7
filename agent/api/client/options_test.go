package client

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	right := Options{Endpoint: "https://api.example.com", Token: "right"}
	for name, row := range map[string]struct {
		change func(*Options)
		want   []string
	}{
		"no endpoint":               {func(o *Options) { o.Endpoint = "" }, []string{"endpoint is empty", "https://api.example.com"}},
		"a blank endpoint":          {func(o *Options) { o.Endpoint = " " }, []string{`endpoint " "`, "https://api.example.com"}},
		"an endpoint without http":  {func(o *Options) { o.Endpoint = "api.example.com" }, []string{`"api.example.com" is not an absolute`}},
		"a host and a port":         {func(o *Options) { o.Endpoint = "localhost:4646" }, []string{`"localhost:4646" is not an absolute`}},
		"another scheme":            {func(o *Options) { o.Endpoint = "ftp://h" }, []string{`"ftp://h" is not an absolute`}},
		"no host":                   {func(o *Options) { o.Endpoint = "http:///v1" }, []string{`"http:///v1" is not an absolute`}},
		"a port alone":              {func(o *Options) { o.Endpoint = "http://:4646" }, []string{`"http://:4646" is not an absolute`}},
		"no URL at all":             {func(o *Options) { o.Endpoint = "http://[" }, []string{`"http://[" is not a URL`}},
		"a query":                   {func(o *Options) { o.Endpoint = "http://h?a=b" }, []string{"query"}},
		"an empty query":            {func(o *Options) { o.Endpoint = "http://h?" }, []string{"query"}},
		"a fragment":                {func(o *Options) { o.Endpoint = "http://h#a" }, []string{"fragment"}},
		"a password":                {func(o *Options) { o.Endpoint = "http://me:hidden-word@h" }, []string{"user name or password"}},
		"a password and a bad port": {func(o *Options) { o.Endpoint = "http://me:hidden-word@h:x" }, []string{"endpoint is not a URL"}},
		"no token":                  {func(o *Options) { o.Token = " \n" }, []string{"token is empty"}},
		"a blank in the token":      {func(o *Options) { o.Token = "hidden-word b" }, []string{"token holds a blank"}},
		"a newline in the token":    {func(o *Options) { o.Token = "hidden-word\nb" }, []string{"token holds a blank"}},
		"a NUL in the token":        {func(o *Options) { o.Token = "hidden-word\x00b" }, []string{"token holds a blank"}},
		"a DEL in the token":        {func(o *Options) { o.Token = "hidden-word\x7fb" }, []string{"token holds a blank"}},
		"a letter beyond ASCII":     {func(o *Options) { o.Token = "hidden-wörd" }, []string{"not ASCII"}},
		"a certificate that is not": {func(o *Options) { o.CACertPEM = []byte("nonsense") }, []string{"BEGIN CERTIFICATE"}},
		"a negative timeout":        {func(o *Options) { o.Timeout = -time.Second }, []string{"timeout -1s", "positive"}},
		"a header in the agent":     {func(o *Options) { o.UserAgent = "a\r\nb: c" }, []string{"user agent", "control character"}},
		"two things":                {func(o *Options) { o.Endpoint, o.Token = "", "" }, []string{"endpoint is empty", "token is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := right
			row.change(&o)
			_, err := New(o)
			wantError(t, err, row.want...)
			if strings.Contains(err.Error(), "hidden-w") {
				t.Errorf("error %q shows a secret", err)
			}
		})
	}
}

func TestNewFillsIn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		retries, wantRetries int
		timeout, wantTimeout time.Duration
	}{
		"defaults":    {0, 4, 0, 30 * time.Second},
		"chosen":      {7, 7, time.Minute, time.Minute},
		"never again": {-1, 0, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := New(Options{Endpoint: "http://h", Token: "t", Retries: row.retries, Timeout: row.timeout})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "retries", c.calls.RetryMax, row.wantRetries)
			wantEqual(t, "timeout", c.calls.HTTPClient.Timeout, row.wantTimeout)
			wantEqual(t, "timeout of streams", c.streams.Timeout, 0)
		})
	}
}

func TestPlaintext(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"http://127.0.0.1:4646":    false,
		"http://127.9.9.9":         false,
		"http://localhost:4646":    false,
		"http://LOCALHOST.":        false,
		"http://a.localhost":       false,
		"http://[::1]:4646":        false,
		"https://api.example.com":  false,
		"http://api.example.com":   true,
		"http://localhost.example": true,
		"http://192.0.2.1":         true,
		"http://0.0.0.0":           true,
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			c, err := New(Options{Endpoint: address, Token: "t"})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "plaintext", c.Plaintext(), want)
		})
	}
}

func TestEndpointWithPath(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"http://h/base", "http://h/base/", "http://h/base//", " http://h/base "} {
		e, err := parseEndpoint(base)
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, base, e.at("/v1/x", atSite("a b")), "http://h/base/v1/x?site=a+b")
	}
}

func TestTokenIsTrimmed(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	c := connect(t, api, func(o *Options) { o.Token = "\t" + api.Token + "\r\n" })
	if _, err := c.Hosts(t.Context(), "acme", ""); err != nil {
		t.Fatal(err)
	}
}

func TestClientPrintsNoToken(t *testing.T) {
	t.Parallel()
	c, err := New(Options{Endpoint: "http://h", Token: aToken})
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(text, aToken) {
		t.Errorf("%s shows the token", text)
	}
}
