// Command renamed stands before an engine and gives some of its tools and fields other names, as an engine from elsewhere might have. It carries
// everything else through unchanged. usage: renamed PROGRAM ARGUMENT...
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

var (
	tools     = map[string]string{"browser_click": "page_click", "browser_type": "page_type"}
	arguments = map[string]string{"ref": "element", "input_route": "via"}
	results   = map[string]string{"ref": "element", "status": "outcome"}
)

func main() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		fail(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		fail(err)
	}
	if err := cmd.Start(); err != nil {
		fail(err)
	}
	go func() {
		lines(os.Stdin, in, toEngine)
		_ = in.Close()
	}()
	lines(out, os.Stdout, fromEngine)
	if err := cmd.Wait(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "renamed:", err)
	os.Exit(1)
}

// lines carries messages, one a line.
func lines(from io.Reader, to io.Writer, change func(map[string]any)) {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes('\n')
		var m map[string]any
		if json.Unmarshal(line, &m) == nil {
			change(m)
			if again, err := json.Marshal(m); err == nil {
				line = append(again, '\n')
			}
		}
		if _, werr := to.Write(line); werr != nil || err != nil {
			return
		}
	}
}

// toEngine gives a call its real names back.
func toEngine(m map[string]any) {
	params, _ := m["params"].(map[string]any)
	if m["method"] != "tools/call" || params == nil {
		return
	}
	for ours, theirs := range tools {
		switch params["name"] {
		case theirs:
			params["name"] = ours
		case ours:
			params["name"] = "no such tool"
		}
	}
	args, _ := params["arguments"].(map[string]any)
	for ours, theirs := range arguments {
		if v, there := args[theirs]; there {
			args[ours] = v
			delete(args, theirs)
		}
	}
}

// fromEngine renames tools in a list and fields in a result.
func fromEngine(m map[string]any) {
	result, _ := m["result"].(map[string]any)
	list, _ := result["tools"].([]any)
	for _, t := range list {
		tool, _ := t.(map[string]any)
		name, _ := tool["name"].(string)
		if theirs, ok := tools[name]; ok {
			tool["name"] = theirs
		}
		delete(tool, "outputSchema")
	}
	if content, there := result["structuredContent"]; there {
		rename(content)
	}
}

func rename(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			rename(value)
		}
		for ours, theirs := range results {
			if value, there := v[ours]; there {
				v[theirs] = value
				delete(v, ours)
			}
		}
	case []any:
		for _, value := range v {
			rename(value)
		}
	}
}
