package main

import (
	"maps"
	"testing"
)

func TestQuiet(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		environment []string
		quiet       bool
	}{
		"nobody asks":                  {[]string{"HOME=/root", "TF_LOG_PATH=/tmp/log", "TF_IN_AUTOMATION=1"}, true},
		"somebody asks":                {[]string{"TF_LOG=TRACE"}, false},
		"for the logs of providers":    {[]string{"TF_LOG_PROVIDER=DEBUG"}, false},
		"for those of this one":        {[]string{"TF_LOG_PROVIDER_OSUPGRADE=DEBUG"}, false},
		"for those of another":         {[]string{"TF_LOG_PROVIDER_AWS=DEBUG"}, true},
		"for those of Terraform alone": {[]string{"TF_LOG_CORE=TRACE"}, true},
		"for those of the libraries":   {[]string{"TF_LOG_SDK_PROTO=TRACE"}, false},
		"off":                          {[]string{"TF_LOG=off", "TF_LOG_PROVIDER="}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, want := map[string]string{}, map[string]string{}
			if row.quiet {
				want = map[string]string{"TF_LOG_SDK": "off", "TF_LOG_PROVIDER_OSUPGRADE": "off"}
			}
			err := quiet(row.environment, func(name, value string) error {
				set[name] = value
				return nil
			})
			if err != nil || !maps.Equal(set, want) {
				t.Errorf("got %v, %v, want %v", set, err, want)
			}
		})
	}
}
