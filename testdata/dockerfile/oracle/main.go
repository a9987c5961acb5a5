// BuildKit's own parser as an oracle: file names on stdin, one JSON line each on stdout.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

type kv struct {
	Name  string  `json:"name"`
	Value *string `json:"value"` // as instructions holds it (quotes still there); null: ARG without default
	Plain *string `json:"plain"` // quotes/escapes removed by shell.Lex, unset variables left as written; null: lexer error or no value
}
type heredoc struct {
	Name    string `json:"name"`
	FD      uint   `json:"fd"`
	Expand  bool   `json:"expand"`
	Chomp   bool   `json:"chomp"`
	Content string `json:"content"`
}
type instr struct {
	Keyword  string    `json:"keyword"`
	Start    int       `json:"start"`
	End      int       `json:"end"`
	Original string    `json:"original"`
	Flags    []string  `json:"flags,omitempty"`
	Args     []string  `json:"args"`
	JSON     bool      `json:"json,omitempty"` // exec form
	OnBuild  string    `json:"onbuild,omitempty"`
	KV       []kv      `json:"kv,omitempty"`
	Heredocs []heredoc `json:"heredocs,omitempty"`
	Error    string    `json:"error,omitempty"` // instructions.ParseInstruction of this node alone
}
type stage struct {
	Name     string `json:"name"`
	Base     string `json:"base"`
	Platform string `json:"platform,omitempty"`
	Start    int    `json:"start"`
	Commands int    `json:"commands"`
}
type verdict struct {
	File         string   `json:"file"`
	OK           bool     `json:"ok"`
	Error        *string  `json:"error"`
	Phase        string   `json:"phase,omitempty"` // which call failed: parse | instructions | read | panic
	ErrorLine    int      `json:"error_line,omitempty"`
	Escape       string   `json:"escape,omitempty"`
	Instructions []instr  `json:"instructions"`
	Stages       []stage  `json:"stages"`
	MetaArgs     []kv     `json:"meta_args"`
	Heredocs     int      `json:"heredocs"`
	Warnings     []string `json:"warnings,omitempty"`
}

// not nil: a nil linter panics on a "# check=" comment before an instruction
var quiet = linter.New(&linter.Config{})

type noEnv struct{}

func (noEnv) Get(string) (string, bool) { return "", false }
func (noEnv) Keys() []string            { return nil }

func plain(lex *shell.Lex, s string) (out *string) {
	defer func() {
		if recover() != nil {
			out = nil
		}
	}()
	w, _, err := lex.ProcessWord(s, noEnv{})
	if err != nil {
		return nil
	}
	return &w
}
func nodeArgs(n *parser.Node) []string {
	r := []string{}
	for a := n.Next; a != nil; a = a.Next {
		if len(a.Children) == 0 {
			r = append(r, a.Value)
		} else {
			r = append(r, a.Children[0].Value)
			r = append(r, nodeArgs(a.Children[0])...)
		}
	}
	return r
}
func argKV(lex *shell.Lex, as []instructions.KeyValuePairOptional) []kv {
	r := []kv{}
	for _, a := range as {
		k := kv{Name: a.Key, Value: a.Value}
		if a.Value != nil {
			k.Plain = plain(lex, *a.Value)
		}
		r = append(r, k)
	}
	return r
}
func kvs(lex *shell.Lex, ps instructions.KeyValuePairs) []kv {
	r := []kv{}
	for _, p := range ps {
		v := p.Value
		r = append(r, kv{p.Key, &v, plain(lex, v)})
	}
	return r
}
func errLine(err error) int {
	var le *parser.LocationError
	if errors.As(err, &le) && len(le.Locations) > 0 && len(le.Locations[0]) > 0 {
		return le.Locations[0][0].Start.Line
	}
	return 0
}
func judge(path string) (v verdict) {
	v = verdict{File: path, Instructions: []instr{}, Stages: []stage{}, MetaArgs: []kv{}}
	fail := func(phase string, err error) {
		s := err.Error()
		v.Error, v.Phase, v.ErrorLine = &s, phase, errLine(err)
	}
	defer func() {
		if r := recover(); r != nil {
			v.OK = false
			fail("panic", fmt.Errorf("%v", r))
		}
	}()
	dt, err := os.ReadFile(path)
	if err != nil {
		fail("read", err)
		return
	}
	res, err := parser.Parse(bytes.NewReader(dt))
	if res != nil && res.AST != nil {
		v.Escape = string(res.EscapeToken)
		lex := shell.NewLex(res.EscapeToken)
		lex.SkipUnsetEnv = true
		for _, w := range res.Warnings {
			v.Warnings = append(v.Warnings, w.Short)
		}
		for _, n := range res.AST.Children {
			in := instr{Keyword: strings.ToLower(n.Value), Start: n.StartLine, End: n.EndLine,
				Original: n.Original, Flags: n.Flags, Args: nodeArgs(n), JSON: n.Attributes["json"]}
			if in.Keyword == "onbuild" && n.Next != nil && len(n.Next.Children) > 0 {
				in.OnBuild = strings.ToLower(n.Next.Children[0].Value)
			}
			for _, h := range n.Heredocs {
				in.Heredocs = append(in.Heredocs, heredoc{h.Name, h.FileDescriptor, h.Expand, h.Chomp, h.Content})
				v.Heredocs++
			}
			c, err := instructions.ParseInstructionWithLinter(n, quiet)
			if err != nil {
				in.Error = err.Error()
			}
			switch c := c.(type) {
			case *instructions.EnvCommand:
				if c != nil {
					in.KV = kvs(lex, c.Env)
				}
			case *instructions.LabelCommand:
				if c != nil {
					in.KV = kvs(lex, c.Labels)
				}
			case *instructions.ArgCommand:
				if c != nil {
					in.KV = argKV(lex, c.Args)
				}
			}
			v.Instructions = append(v.Instructions, in)
		}
		if err == nil {
			stages, meta, err2 := instructions.Parse(res.AST, quiet)
			if err2 != nil {
				fail("instructions", err2)
				return
			}
			for _, s := range stages {
				st := stage{Name: s.Name, Base: s.BaseName, Platform: s.Platform, Commands: len(s.Commands)}
				if len(s.Location) > 0 {
					st.Start = s.Location[0].Start.Line
				}
				v.Stages = append(v.Stages, st)
			}
			for _, m := range meta {
				v.MetaArgs = append(v.MetaArgs, argKV(lex, m.Args)...)
			}
			v.OK = true
			return
		}
	}
	if err != nil {
		fail("parse", err)
	}
	return
}
func main() {
	sc := bufio.NewScanner(os.Stdin)
	sc.Buffer(nil, 1<<20)
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for sc.Scan() {
		if p := sc.Text(); p != "" {
			_ = enc.Encode(judge(p))
		}
	}
}
