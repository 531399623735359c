// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReturnedSearchMustBeUnmodified(t *testing.T) {
	page := Found{URL: "https://a.example", Title: "A"}
	call := `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`
	result := func(id, content string) string {
		return `{"type":"web_search_tool_result","tool_use_id":"` + id + `","content":` + content + `}`
	}
	genuine := `[` + string(encode(page.anthropic())) + `]`
	for name, c := range map[string]struct{ blocks, refused string }{
		"as it was":        {call + "," + result("srvtoolu_1", genuine), ""},
		"one that failed":  {call + "," + result("srvtoolu_1", `{"error_code":"too_many_requests"}`), ""},
		"without a result": {call, "found without a corresponding"},
		"without its call": {result("srvtoolu_1", genuine), "unexpected `tool_use_id`"},
		"of another page":  {call + "," + result("srvtoolu_1", strings.Replace(genuine, "a.ex", "b.ex", 1)), "Invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			var message anthropicMessage
			if err := json.Unmarshal([]byte(`{"role":"assistant","content":[`+c.blocks+`]}`), &message); err != nil {
				t.Fatal(err)
			}
			refused := anthropicSearches([]anthropicMessage{message})
			if (refused == nil) != (c.refused == "") || refused != nil && !strings.Contains(refused.message, c.refused) {
				t.Errorf("it is refused because of %+v", refused)
			}
		})
	}
}
