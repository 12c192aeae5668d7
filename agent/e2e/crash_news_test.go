//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// The news script of a crashFleet writes what it is told to a file outside of the site.
const (
	newsScripts = "news"
	newsTold    = "told"
)

// openNews writes the news script.
func (f *crashFleet) openNews() error {
	if err := os.Mkdir(f.path(newsScripts), 0o700); err != nil {
		return err
	}
	text := "#!/bin/sh\ncat >/dev/null\necho \"$OSUPGRADE_NEWS_ID\" >>" + f.path(newsTold) + "\n"
	return os.WriteFile(f.path(newsScripts, "tell"), []byte(text), 0o700) //nolint:gosec // it is a script
}

// told waits until all news of a run that has ended have been told to the script, and judges them:
// none is missing, and the script was told nothing else.
func (f *crashFleet) told(ended v1.Run) error {
	run := ended.ID
	fails := slices.ContainsFunc(ended.Hosts, func(h v1.RunHost) bool { return h.Status == "failed" })
	return f.insist(fmt.Sprintf("see all news of run %d told", run), func(ctx context.Context) error {
		all, err := f.news(ctx)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(f.path(newsTold))
		if err != nil {
			return err
		}
		times := map[string]int{}
		for id := range strings.FieldsSeq(string(text)) {
			times[id]++
		}
		kinds := map[string]int{}
		for _, n := range all {
			if n.Data.Run != run {
				continue
			}
			if kinds[n.Type]++; times[n.ID] == 0 {
				return fmt.Errorf("the script was not told: %s %s", n.ID, n.Data.Text)
			}
		}
		if kinds[v1.NewsRunOpened] != 1 || kinds[v1.NewsRunFinished] != 1 || fails != (kinds[v1.NewsHostFailed] > 0) || kinds[v1.NewsStageDone] == 0 {
			return fmt.Errorf("the news are %v", kinds)
		}
		for id := range times {
			if !listed(all, id) {
				return fmt.Errorf("the script was told %s, which is not among the news", id)
			}
		}
		return nil
	})
}

// news returns the news that the site lists.
func (f *crashFleet) news(ctx context.Context) (all []v1.News, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.address+":4646/v1/state/tenants/acme/os-upgrade/news", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+f.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the news are answered with %s", answer.Status)
	}
	return all, json.NewDecoder(answer.Body).Decode(&all)
}

func listed(all []v1.News, id string) bool {
	for _, n := range all {
		if n.ID == id {
			return true
		}
	}
	return false
}
