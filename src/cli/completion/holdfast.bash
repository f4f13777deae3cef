# bash completion for holdfast. tests/cli/docs.sh compares it with the program's tables.

_holdfast() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev= command= word i options values=
  local commands="serve check-config hold confirm release expire reverse show list resource guard check record
    admit claim lease register audit trace export bench simulate version help"
  local asking="--server --credential-file --tls-ca --timeout"
  local kept="--data --store --postgres"
  local look="$kept $asking --tenant --json --help"
  local key="--key --client --sequence"
  local store="$look --idempotency-window --token-max-length --registry"

  COMPREPLY=()
  # "--name=value" arrives as three words where = breaks words.
  [ "$COMP_CWORD" -gt 0 ] && prev=${COMP_WORDS[COMP_CWORD - 1]}
  if [ "$cur" = "=" ]; then
    cur=
  elif [ "$prev" = "=" ] && [ "$COMP_CWORD" -gt 1 ]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi

  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case $word in
    --data | --store | --postgres | --server | --credential-file | --tls-ca | \
      --timeout | --tenant | --idempotency-window | --token-max-length | --registry) ((i++)) ;;
    -*) ;;
    *) command=$word && break ;;
    esac
  done

  case $prev in
  --data | --dir | --out)
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -d -- "$cur")
    return
    ;;
  --credential-file | --tls-ca | --config | --auth-file | --tls-cert | --tls-key | --record)
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    return
    ;;
  --registry) values="open strict" ;;
  --store) values="journal postgres" ;;
  --log) values="text json" ;;
  --log-keys) values="plain hashed" ;;
  --log-duplicates) values="yes no" ;;
  --sandbox) values="on off" ;;
  --state) values="held confirmed released expired" ;;
  --on-unavailable) values="open closed" ;;
  --on-abandon) values="unknown retry" ;;
  --late) values="reacquire" ;;
  --status) values="started completed failed retryable unknown" ;;
  --durable | --require-fence) values="yes no" ;;
  --type) values="max min or union lww vector counter updown" ;;
  --format) values="jsonl sqlite" ;;
  --duration | --window | --idempotency-window | --time | --timeout | --lease | --retention | --ttl)
    values="30s 1m 5m 15m 1h 24h 7d"
    ;;
  --match)
    # Keep the steps that were already typed.
    local before=
    [[ $cur == *,* ]] && before=${cur%,*},
    for word in exact trim casefold normalize hash; do
      [[ ,$before == *,"$word",* ]] || values+=" $before$word"
    done
    ;;
  --client | --sequence | \
    --tenant | --token-max-length | --for | --fence | --key | --resource | --requester | --from | \
    --to | --limit | --cursor | --capacity | --result | --tokens | --resources | --rounds | \
    --server | --listen | --threads | --postgres | --max-body | --max-connections | \
    --tenant-connections | --tenant-rate | --memory-max | --tenant-memory-max | \
    --tenant-records-max | --seed | --seeds | --ops | --jobs | --payload | --fingerprint | \
    --response | --error | --prefix | --expect-head | --holder | --value | --if-version) return ;;
  esac
  if [ -n "$values" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur")
    return
  fi

  case $command in
  "") options="$store $commands" ;;
  serve | check-config)
    options="$kept --listen --threads --auth-file --tls-cert --tls-key --max-body
      --max-connections --tenant-connections --tenant-rate --memory-max --tenant-memory-max
      --tenant-records-max --log --log-keys --log-duplicates --sandbox
      --idempotency-window --token-max-length --registry --help"
    if [ "$command" = serve ]; then
      options+=" --config --welcome"
    elif [[ $cur == -* ]]; then
      options+=" --json"
    else
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return
    fi
    ;;
  hold) options="--for --duration --fence $key $store" ;;
  confirm) options="--late $key $store" ;;
  release | expire | reverse) options="$key $store" ;;
  show) options=$look ;;
  check) options="--fail-if-seen $look" ;;
  list) options="--state --resource --requester --from --to --limit --cursor $look" ;;
  resource) options="--capacity --close --open --require-fence $store" ;;
  guard) options="--window --match --on-unavailable --durable --force $store" ;;
  record) options="--result $store" ;;
  admit) options="--result --fail-if-seen $store" ;;
  claim)
    options="--payload --fingerprint --lease --retention --on-abandon --fence --response --error
      --retryable --status --prefix --from --to --limit --cursor $store"
    [ "$prev" = claim ] && options="begin show list heartbeat complete fail abandon $options"
    ;;
  lease)
    options="--holder --ttl --fence $key $store"
    [ "$prev" = lease ] && options="grant renew release show delete $options"
    ;;
  register)
    options="--value --type --fence --if-version --require-fence $key $store"
    [ "$prev" = register ] && options="write merge show delete $options"
    ;;
  audit) options="--expect-head $look" ;;
  trace) options="--client --sequence $look" ;;
  export)
    options="--format $kept $asking --tenant --help"
    if [[ $cur != -* ]]; then
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return
    fi
    ;;
  bench) options="--tokens --resources --time --rounds --dir --out --json --help" ;;
  simulate) options="--seed --seeds --ops --jobs --record --trace-hash --minimize --json --help" ;;
  version) options="$asking --json --help" ;;
  help) options="--help $commands" ;;
  *) return ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
}

complete -F _holdfast holdfast
