package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
)

// maxAttempts is how many attempts may fail from one source in a minute.
const maxAttempts = 10

// TestAttemptsAtOnce checks that of attempts which come at once from one source no more are
// tried than of those that come in turn, whomever they name, and that right ones which come
// together are not refused for that.
func TestAttemptsAtOnce(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		path, token string
		tried       int
		body        func(i int) string
	}{
		"one user": {"/v1/login", "", 401, func(int) string { return `{"username":"ann","password":"wrong"}` }},
		"several users": {"/v1/login", "", 401, func(i int) string {
			return fmt.Sprintf(`{"username":%q,"password":"wrong"}`, []string{"ann", "bob", "eve"}[i%3])
		}},
		"approles": {"/v1/approle-login", "", 401, func(i int) string { return fmt.Sprintf(`{"secret-id":"wrong-%d"}`, i) }},
		"joins": {"/v1/join", "Bearer osuj_" + strings.Repeat("0", 48), 409, func(i int) string {
			return fmt.Sprintf(`{"host":"h%02d","public-key":"U","proof":"x"}`, i)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t, 0)
			c.user(access.Viewer)
			var mu sync.Mutex
			statuses := map[int]int{}
			var all sync.WaitGroup
			for i := range 4 * maxAttempts {
				all.Go(func() {
					// As many wait for the password to be checked as may: others are to come again.
					for again := true; again; {
						a := c.call("POST", row.path, row.body(i), "Authorization", row.token)
						again = a.status == http.StatusServiceUnavailable
						mu.Lock()
						statuses[a.status]++
						mu.Unlock()
					}
				})
			}
			all.Wait()
			if statuses[row.tried] != maxAttempts || statuses[http.StatusTooManyRequests] != 3*maxAttempts {
				t.Errorf("they are answered %v", statuses)
			}
		})
	}
}
