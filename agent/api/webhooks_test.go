package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/webhook"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestWebhooks lives through the life of a webhook of a real site, with a receiver that
// checks the signatures: declared, tested, told of a run, and removed. Its secret is in no
// answer and in no file.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 1)
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	key, err := v1.WebhookKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = webhook.Verify(key, r.Header, body, time.Now())
		}
		if err != nil {
			t.Error(err)
		}
		received <- string(body)
	}))
	t.Cleanup(receiver.Close)
	await := func(part string) {
		t.Helper()
		deadline := time.After(30 * time.Second)
		for {
			select {
			case body := <-received:
				if strings.Contains(body, part) {
					return
				}
			case <-deadline:
				t.Fatalf("the receiver was not sent %s", part)
			}
		}
	}
	const path, state = configPath + "/webhooks/chat", statePath + "/webhooks/chat"
	declared := `{"url":"` + receiver.URL + `"`
	c.want(c.call("GET", path, ""), 404, "has no webhook chat")
	c.want(c.call("POST", state+"/test", ""), 404, "has no webhook chat")
	c.want(c.call("PUT", path, declared+`}`), 400, "secret: it is missing")
	c.want(c.call("PUT", path, declared+`,"secret":"swordfish-123"}`), 400, "the secret is not whsec_")
	c.want(c.call("PUT", path, `{"url":"http://hooks.example/","secret":"`+secret+`"}`), 400, "is not https")
	c.want(c.call("PUT", path, declared+`,"news":["run.opend"],"secret":"`+secret+`"}`), 400, "run.opened")
	c.want(c.call("PUT", configPath+"/webhooks/No", declared+`}`), 400, "is not the name of a webhook")
	c.want(c.call("PUT", configPath+"/webhooks/script-chat", declared+`,"secret":"`+secret+`"}`), 400, "are those of the site's news scripts")
	tag := c.want(c.call("PUT", path, declared+`,"secret":"`+secret+`"}`, "If-None-Match", "*"), 201, "").header.Get("ETag")
	c.want(c.call("GET", path, ""), 200, declared+`}`)
	c.want(c.call("PATCH", path, `{"description":"the operators' room"}`, "If-Match", tag), 204, "")
	c.want(c.call("GET", configPath+"/webhooks", ""), 200, `"description":"the operators' room"`)
	c.want(c.call("POST", state+"/test", ""), 200, `"delivered":true`)
	await(`"type":"test"`)
	c.want(c.call("PUT", configPath, body), 201, "")
	c.want(c.call("POST", statePath+"/start", `{"override-window":true,"reason":"a test"}`), 200, "")
	await(`"type":"run.opened"`)
	await(`"type":"run.finished"`)
	c.want(c.call("GET", statePath+"/news", ""), 200, `"type":"run.finished"`)
	c.want(c.call("GET", statePath+"/webhooks?count=true", ""), 200, "1")
	c.want(c.call("GET", state, ""), 200, `"name":"chat","status":"delivering"`)
	c.want(c.call("POST", state+"/resend", ""), 200, `{"delivered":0,"left":0}`)
	c.want(c.call("POST", state+"/resend", `{"ids":["msg_1"]}`), 404, "has no dead news of these ids")
	if metrics := c.call("GET", "/metrics", ""); !strings.Contains(metrics.body, `osupgrade_webhook_queue{tenant="demo",webhook="chat"} 0`) {
		t.Error("the metrics have no queue of the webhook")
	}
	for _, where := range []string{path, configPath + "/webhooks", state, statePath + "/webhooks", "/v1/state/tenants/demo/audit"} {
		if answer := c.call("GET", where, ""); strings.Contains(answer.body, secret) || strings.Contains(answer.body, "sealed") {
			t.Errorf("%s shows the secret: %s", where, answer.body)
		}
	}
	if err := filepath.WalkDir(c.dir, func(file string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // it was removed meanwhile
		}
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), strings.TrimPrefix(secret, "whsec_")) {
			t.Errorf("%s has the secret", file)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	c.want(c.call("DELETE", path, ""), 204, "")
	c.want(c.call("GET", state, ""), 404, "has no webhook chat")
}
