# Prints what the kernel says of AMD cards below $1 (/sys), names of processes below $2 (/proc):
#   CARD KEY=VALUE   or   CARD KEY!denied|failed
show() {
    [ -e "$3" ] || return 0
    if [ ! -r "$3" ]; then echo "$1 $2!denied"; return 0; fi
    v=
    IFS= read -r v 2>/dev/null <"$3"
    if [ -n "$v" ]; then echo "$1 $2=$v"; else echo "$1 $2!failed"; fi
}
for c in "$1"/class/drm/card*; do
    n=${c##*/} d=$c/device v=
    case $n in *[!a-z0-9]*) continue ;; esac
    read -r v 2>/dev/null <"$d/vendor"
    [ "$v" = 0x1002 ] || continue
    echo "$n vendor=$v"
    show "$n" device "$d/device"
    show "$n" name "$d/product_name"
    show "$n" uuid "$d/unique_id"
    show "$n" power_state "$d/power/runtime_status"
    s=
    read -r s 2>/dev/null <"$d/power/runtime_status"
    # A card that sleeps is let sleep.
    [ "$s" != suspended ] || continue
    for f in mem_info_vram_total mem_info_vram_used gpu_busy_percent mem_busy_percent current_link_speed current_link_width; do
        show "$n" "$f" "$d/$f"
    done
    for h in "$d"/hwmon/hwmon*; do
        for f in temp1_input temp2_input temp1_crit temp1_emergency temp2_crit temp2_emergency power1_average power1_input power1_cap \
            freq1_input freq2_input pwm1 fan1_input fan1_max; do
            show "$n" "$f" "$h/$f"
        done
    done
    for r in "$d"/drm/renderD*; do
        [ -e "$r" ] && echo "$n render=${r##*/renderD}"
    done
done
for t in "$1"/class/kfd/kfd/topology/nodes/*; do
    i= m=
    read -r i 2>/dev/null <"$t/gpu_id"
    [ "${i:-0}" != 0 ] || continue
    while read -r k v; do [ "$k" = drm_render_minor ] && m=$v; done 2>/dev/null <"$t/properties"
    echo "kfd node=$i $m"
done
for p in "$1"/class/kfd/kfd/proc/*; do
    [ -d "$p" ] || continue
    id=${p##*/} name=
    read -r name 2>/dev/null <"$2/$id/comm"
    for f in "$p"/vram_*; do
        v=
        read -r v 2>/dev/null <"$f"
        [ -n "$v" ] && echo "kfd process=$id ${f##*/vram_} $v $name"
    done
done
exit 0
